/** Puts another file in the place of a document. */
import { useEffect, useMemo, useRef, useState } from "react";
import type { DocumentDetail } from "../../api/types";
import { useApp } from "../../context";
import { bytes } from "../../format";
import { useMessages } from "../../messages";
import { useAnnounce } from "../../parts/Announcer";
import { Confirm } from "../../parts/Dialog";
import { Icon } from "../../parts/Icon";
import { documentName, plain } from "../../parts/names";
import { Button } from "../../parts/shapes";
import { mediaType } from "./files";
import { uploadApi } from "./sending";
import { isActive, uploads, useUploads } from "./uploads";

interface Props {
  document: DocumentDetail;
  isPrimary: boolean;
  onReplaced: () => void;
}

export function Replace({ document, isPrimary, onReplaced }: Props) {
  const text = useMessages("documents");
  const { client } = useApp();
  const api = useMemo(() => uploadApi(client), [client]);
  const announce = useAnnounce();
  const input = useRef<HTMLInputElement>(null);
  const [file, setFile] = useState<File | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const upload = useUploads().findLast((each) => each.key === document.key);
  const isSending = upload !== undefined && isActive(upload);
  const [wasSending, setWasSending] = useState(isSending);
  useEffect(() => {
    if (wasSending === isSending) return;
    setWasSending(isSending);
    if (wasSending) onReplaced();
  }, [wasSending, isSending, onReplaced]);
  const name = documentName(document.uri);
  const suffix = /\.[^./]+$/.exec(document.key)?.[0] ?? "";
  const choose = (chosen: File | undefined) => {
    if (!chosen) return;
    const isSame = mediaType(chosen.name) === mediaType(document.key);
    setProblem(isSame ? null : text.otherType(suffix));
    setFile(isSame ? chosen : null);
  };
  return (
    <>
      <Button
        kind={isPrimary ? "primary" : undefined}
        disabled={isSending}
        aria-describedby={problem ? "replace-problem" : undefined}
        onClick={() => input.current?.click()}
      >
        <Icon name="replace" size={16} /> {text.replace}
      </Button>
      <input
        ref={input}
        type="file"
        hidden
        accept={suffix}
        onChange={(event) => {
          choose(event.currentTarget.files?.[0]);
          event.currentTarget.value = "";
        }}
      />
      {isSending && (
        <span className="small" role="status">
          <span className="spinner" aria-hidden="true" /> {text.replacing}
        </span>
      )}
      {(problem || (upload?.state === "failed" && upload.document === null)) && (
        <p id="replace-problem" className="wrong" role="alert">
          {problem ?? text.notReplaced(upload?.reason ?? "")}
        </p>
      )}
      {file && (
        <Confirm
          title={text.replaceTitle(name)}
          action={text.replace}
          isDangerous
          onConfirm={async () => {
            const folder = document.key.slice(0, document.key.lastIndexOf("/") + 1);
            const path = document.key.slice(folder.length);
            uploads.add(api, [{ path, file }], folder, {}, "replace");
            announce(text.replacing);
          }}
          onClose={() => setFile(null)}
        >
          <p dir="auto">{text.replaceBody(plain(file.name), bytes(file.size))}</p>
        </Confirm>
      )}
    </>
  );
}
