/** A user or a group, with those that the rules name as suggestions. */
import { useId } from "react";

interface Props {
  label: string;
  value: string;
  onChange: (value: string) => void;
  known: string[];
  pattern?: string;
}

export function PrincipalField({ label, value, onChange, known, pattern }: Props) {
  const id = useId();
  return (
    <label className="field grow">
      {label} (such as user:alice or group:people)
      <input
        required
        dir="auto"
        list={id}
        autoComplete="off"
        spellCheck={false}
        value={value}
        {...(pattern ? { pattern } : {})}
        onChange={(event) => onChange(event.target.value)}
      />
      <datalist id={id}>
        {known.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </label>
  );
}
