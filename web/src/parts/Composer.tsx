/** Where people write a question, and below it what is searched, as far as it is not the default. */

import type { ReactNode, Ref } from "react";
import type { InferredFilter } from "../api/types";
import type { Settings } from "../settings";
import "../style/composer.css";
import { QuestionBox } from "./QuestionBox";
import { SettingsRow } from "./SettingsRow";
import { Form } from "./shapes";

interface Props {
  text: string;
  onText: (text: string) => void;
  placeholder: string;
  settings: Settings;
  onSettings: (settings: Settings) => void;
  kind: "ask" | "search";
  inferred?: InferredFilter | null;
  onWithoutInferred?: (key: string) => void;
  onSubmit: () => void;
  box?: Ref<HTMLTextAreaElement>;
  /** The button that sends the question. */
  button: ReactNode;
  /** What stands below. */
  children?: ReactNode;
}

export function Composer({ text, onText, placeholder, box, button, children, onSubmit, ...row }: Props) {
  return (
    <Form className="composer" onSubmit={onSubmit}>
      <QuestionBox ref={box} rows={1} placeholder={placeholder} value={text} onChange={onText} />
      <div className="composer-row">
        <SettingsRow
          settings={row.settings}
          onChange={row.onSettings}
          kind={row.kind}
          inferred={row.inferred}
          onWithoutInferred={row.onWithoutInferred}
        />
        {button}
      </div>
      {children}
    </Form>
  );
}
