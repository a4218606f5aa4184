/** What can be done with the documents that are selected. */
import { useRef, useState } from "react";
import type { DocumentSummary } from "../../api/types";
import { useAction, useApp } from "../../context";
import { useMessages } from "../../messages";
import { useAnnounce } from "../../parts/Announcer";
import { parseValue } from "../../parts/attributes";
import { Confirm, Dialog } from "../../parts/Dialog";
import { TextField } from "../../parts/fields";
import { Icon } from "../../parts/Icon";
import { documentName } from "../../parts/names";
import { Button, Form, IconButton } from "../../parts/shapes";
import { ErrorBox } from "../../parts/states";
import { waiting } from "../../parts/Undo";
import { forEach } from "./forEach";
import { removal } from "./removal";
import { replay } from "./replay";
import { focusList } from "./Table";

interface Props {
  rows: readonly DocumentSummary[];
  canWrite: boolean;
  onClear: () => void;
  onChanged: () => void;
}

export function Selection({ rows, canWrite, onClear, onChanged }: Props) {
  const text = useMessages("documents");
  const { client, me } = useApp();
  const announce = useAnnounce();
  const action = useAction();
  const [isSetting, setSetting] = useState(false);
  const [asked, setAsked] = useState<"remove" | "again" | null>(null);
  const isSure = useRef(false);
  const remove = () => {
    waiting.add(removal(client, rows, focusList));
    onClear();
  };
  const again = () =>
    action.run(async () => {
      const uris = rows.map(({ uri }) => uri);
      announce(text.indexedAgain(await replay(client, uris)));
      onClear();
      onChanged();
    });
  return (
    <section className="row selection" aria-label={text.selection}>
      <strong>{text.selected(rows.length)}</strong>
      {canWrite && (
        <>
          <Button onClick={() => setSetting(true)}>
            <Icon name="tag" size={16} /> {text.setAttribute}
          </Button>
          {me.rights.includes("operate") && (
            <Button onClick={() => (rows.length > 1 ? setAsked("again") : void again())}>
              <Icon name="retry" size={16} /> {text.again}
            </Button>
          )}
          <Button kind="danger" onClick={() => (rows.length > 1 ? setAsked("remove") : remove())}>
            <Icon name="delete" size={16} /> {text.remove}
          </Button>
        </>
      )}
      <IconButton icon="close" label={text.clearSelection} onClick={onClear} />
      {action.error && <ErrorBox error={action.error} onRetry={again} />}
      {asked && (
        <Confirm
          title={(asked === "remove" ? text.deleteTitle : text.againTitle)(rows.length)}
          action={asked === "remove" ? text.remove : text.again}
          isDangerous={asked === "remove"}
          // Carried out when the dialog is gone: nothing behind it can take the focus before.
          onConfirm={async () => {
            isSure.current = true;
          }}
          onClose={() => {
            setAsked(null);
            if (isSure.current) void (asked === "remove" ? remove : again)();
            isSure.current = false;
          }}
        >
          <p>{asked === "remove" ? text.deleteBody : text.againBody}</p>
        </Confirm>
      )}
      {isSetting && (
        <SetAttribute
          rows={rows}
          onClose={() => setSetting(false)}
          onDone={() => {
            onClear();
            onChanged();
          }}
        />
      )}
    </section>
  );
}

interface SetProps {
  rows: readonly DocumentSummary[];
  onClose: () => void;
  onDone: () => void;
}

function SetAttribute({ rows, onClose, onDone }: SetProps) {
  const text = useMessages("documents");
  const { client } = useApp();
  const announce = useAnnounce();
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const [problems, setProblems] = useState<readonly string[]>([]);
  const { run, isRunning } = useAction();
  const known = [...new Set(rows.flatMap((row) => Object.keys(row.attributes)))].sort();
  const save = (close: () => void) =>
    run(async () => {
      const attributes = { [name.trim()]: value.trim() ? parseValue(value) : null };
      const failed = await forEach(rows, ({ id }) =>
        client.patch("/api/documents/{id}", { id }, { attributes, merge: true }),
      );
      if (failed.length < rows.length) announce(text.attributeSet(rows.length - failed.length));
      if (failed.length > 0)
        setProblems([
          text.attributeNotSet(failed.length, failed[0]?.error.message ?? ""),
          ...failed.map(({ item }) => documentName(item.uri)),
        ]);
      else {
        close();
        onDone();
      }
    });
  return (
    <Dialog title={text.setAttributeTitle(rows.length)} className="confirm" onClose={onClose}>
      {(close) => (
        <Form className="stack" onSubmit={() => save(close)}>
          <TextField label={text.attributeName} required known={known} value={name} onChange={setName} />
          <TextField label={text.attributeValue} value={value} onChange={setValue} />
          <p className="small">{text.attributeHint}</p>
          {problems.length > 0 && (
            <ul className="box error" role="alert">
              {problems.map((problem) => (
                <li key={problem} dir="auto">
                  {problem}
                </li>
              ))}
            </ul>
          )}
          <div className="row">
            <Button type="submit" kind="primary" disabled={isRunning || !name.trim()}>
              {text.set}
            </Button>
            <Button onClick={close}>{text.cancel}</Button>
          </div>
        </Form>
      )}
    </Dialog>
  );
}
