/** The link to a conversation, for people whose rights may differ. */
import { useEffect, useRef, useState } from "react";
import type { ConversationSummary } from "../api/types";
import { useAction, useApp } from "../context";
import { keptConversations, sharedId } from "../conversations";
import { useMessages } from "../messages";
import { address } from "../route";
import { useAnnounce } from "./Announcer";
import { CopyButton } from "./CopyButton";
import { Sheet } from "./Dialog";
import { TextField } from "./fields";
import { Button } from "./shapes";
import { ErrorBox } from "./states";

interface Props {
  conversation: Pick<ConversationSummary, "id" | "shared">;
  onClose: () => void;
}

export function ShareDialog({ conversation: { id, shared }, onClose }: Props) {
  const { client } = useApp();
  const text = useMessages("ask");
  const announce = useAnnounce();
  const { run, isRunning, error } = useAction();
  const [link, setLink] = useState<string | null>(null);
  const [isShared, setShared] = useState(shared);
  const url = link && `${location.href.split("#")[0]}${address("ask", {}, sharedId(link))}`;
  const share = () =>
    run(async () => {
      const made = await client.put("/api/conversations/{id}/share", { id });
      setLink(made.link);
      setShared(true);
      keptConversations.note();
      announce(text.linkIsReady);
    });
  const stop = () =>
    run(async () => {
      await client.delete("/api/conversations/{id}/share", { id });
      setLink(null);
      setShared(false);
      keptConversations.note();
      announce(text.linkIsGone);
    });
  const body = useRef<HTMLDivElement>(null);
  useEffect(() => body.current?.querySelector<HTMLElement>("input, button")?.focus(), [url]);
  return (
    <Sheet title={text.shareConversation} onClose={onClose}>
      {() => (
        <div className="stack" ref={body}>
          <p>{text.shareRights}</p>
          {error && <ErrorBox error={error} />}
          {url && <TextField label={text.link} readOnly value={url} onChange={() => undefined} />}
          <div className="row">
            {url ? (
              <CopyButton icon="copy" label={text.copyLink} text={() => url} />
            ) : (
              <Button kind="primary" disabled={isRunning} onClick={share}>
                {isShared ? text.showLink : text.makeLink}
              </Button>
            )}
            {isShared && (
              <Button disabled={isRunning} onClick={stop}>
                {text.stopSharing}
              </Button>
            )}
          </div>
        </div>
      )}
    </Sheet>
  );
}
