/** Who sees a document: one of the labels that people may give where it is. */
import { useMessages } from "../../messages";
import { Select } from "../../parts/fields";
import type { WritablePrefix } from "./folders";

interface Props {
  prefix: WritablePrefix;
  /** Empty: the default of the prefix. */
  value: string;
  onChange: (label: string) => void;
}

export function LabelSelect({ prefix: { labels, default: usual }, value, onChange }: Props) {
  const text = useMessages("documents");
  const others = labels.filter((label) => label !== usual);
  // A document may have a label that the person may not give.
  const all = value === "" || value === usual || others.includes(value) ? others : [value, ...others];
  return (
    <Select
      label={text.whoSees}
      value={value}
      options={[
        [value === usual ? value : "", usual === null ? text.choose : text.default(usual)],
        ...all.map((label) => [label, label] as const),
      ]}
      onChange={onChange}
    />
  );
}
