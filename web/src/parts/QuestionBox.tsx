import type { ComponentProps } from "react";

interface Props extends Omit<ComponentProps<"textarea">, "onChange"> {
  onChange: (question: string) => void;
}

/** Where people write a question; Enter sends it. */
export function QuestionBox({ onChange, ...others }: Props) {
  return (
    <textarea
      aria-label="Question"
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
