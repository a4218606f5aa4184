import type { ComponentProps } from "react";
import { useMessages } from "../messages";

interface Props extends Omit<ComponentProps<"textarea">, "onChange"> {
  onChange: (question: string) => void;
}

/** Where people write a question; Enter sends it. */
export function QuestionBox({ onChange, ...others }: Props) {
  const text = useMessages("parts");
  return (
    <textarea
      aria-label={text.question}
      dir="auto"
      {...others}
      onChange={(event) => onChange(event.target.value)}
      onKeyDown={(event) => {
        if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
        event.preventDefault();
        event.currentTarget.form?.requestSubmit();
      }}
    />
  );
}
