/** Fields with their labels. */
import { type ComponentProps, type ReactNode, useId } from "react";

interface LabelProps {
  label: ReactNode;
  /** Whether only screen readers read the label. */
  isHidden?: boolean;
  className?: string;
}

interface SelectProps extends LabelProps {
  value: string;
  options: readonly (readonly [value: string, title: ReactNode, isDisabled?: boolean])[];
  onChange: (value: string) => void;
}

export function Select({ value, options, onChange, ...label }: SelectProps) {
  return (
    <Labelled {...label}>
      <select value={value} onChange={(event) => onChange(event.target.value)}>
        {options.map(([name, title, isDisabled]) => (
          <option key={name} value={name} disabled={isDisabled}>
            {title}
          </option>
        ))}
      </select>
    </Labelled>
  );
}

interface TextProps extends LabelProps, Omit<ComponentProps<"input">, "onChange" | "className"> {
  value: string;
  onChange: (value: string) => void;
  /** Values to choose from. */
  known?: readonly string[];
}

export function TextField({ label, isHidden, className, onChange, known, ...input }: TextProps) {
  const id = useId();
  return (
    <Labelled label={label} isHidden={isHidden ?? false} className={className ?? ""}>
      <input dir="auto" {...input} list={known && id} onChange={(event) => onChange(event.target.value)} />
      {known && (
        <datalist id={id}>
          {known.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      )}
    </Labelled>
  );
}

interface CheckProps {
  checked: boolean;
  onChange: (checked: boolean) => void;
  className?: string;
  children: ReactNode;
}

export function Checkbox({ checked, onChange, className = "row", children }: CheckProps) {
  return (
    <label className={className}>
      <input type="checkbox" checked={checked} onChange={(event) => onChange(event.target.checked)} />
      {children}
    </label>
  );
}

function Labelled({ label, isHidden, className = "", children }: LabelProps & { children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the children are the control
    <label className={`field ${className}`}>
      {isHidden ? <span className="visually-hidden">{label}</span> : label}
      {children}
    </label>
  );
}

interface SegmentsProps<Name extends string> {
  label: string;
  value: Name;
  options: readonly (readonly [value: Name, title: string, icon?: ReactNode])[];
  onChange: (value: Name) => void;
}

/** One of few choices, which are all seen. */
export function Segments<Name extends string>({ label, value, options, onChange }: SegmentsProps<Name>) {
  const id = useId();
  return (
    <fieldset className="segments">
      <legend>{label}</legend>
      <div>
        {options.map(([name, title, icon]) => (
          <label key={name}>
            <input type="radio" name={id} checked={name === value} onChange={() => onChange(name)} />
            {icon}
            {title}
          </label>
        ))}
      </div>
    </fieldset>
  );
}
