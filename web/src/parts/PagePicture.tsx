/** The part of a page around the words of a result or source, which loads when it comes into view. */

import { useEffect, useRef, useState } from "react";
import type { DocumentView } from "../api/types";
import { useLoaded } from "../context";
import { messages, useMessages } from "../messages";
import { marksHere, visibleBoxes } from "./marks";
import { documentName, plain } from "./names";
import { Button } from "./shapes";
import { beginning, slice } from "./spans";
import "../style/picture.css";

interface Props {
  /** Where the interface has the picture; nothing is shown for documents without pages. */
  link: string | null | undefined;
  uri: string | null;
  onOpen: () => void;
}

const SHORT = 300;
const NEAR = { rootMargin: "100px" };

export function PagePicture({ link, ...others }: Props) {
  return link ? <Frame key={link} link={link} {...others} /> : null;
}

/** The place of a picture, which is there before the picture. */
function Frame(props: Props & { link: string }) {
  const frame = useRef<HTMLDivElement>(null);
  const [isNear, setNear] = useState(false);
  useEffect(() => {
    if (!frame.current || isNear) return;
    const watch = new IntersectionObserver((seen) => setNear(seen.some((each) => each.isIntersecting)), NEAR);
    watch.observe(frame.current);
    return () => watch.disconnect();
  }, [isNear]);
  return (
    <div className="page-picture" ref={frame}>
      {isNear && <Loaded {...props} />}
    </div>
  );
}

function Loaded({ link, uri, onOpen }: Props & { link: string }) {
  const text = useMessages("parts");
  const { data, error } = useLoaded(link, (client, signal) => client.follow(link, signal));
  if (error) return <p className="small">{text.noPicture(error.message)}</p>;
  if (!data) return null;
  if (!data.image) return <p className="small">{text.noPlace}</p>;
  const [width, height] = [data.width ?? 1, data.height ?? 1];
  return (
    <Button className="picture" title={text.openOriginal} onClick={onOpen}>
      <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={described(data, uri)}>
        <image href={`data:${data.image_type};base64,${data.image}`} width={width} height={height} />
        {marksHere(data)
          .flatMap(visibleBoxes)
          .map((box) => (
            <rect
              key={`${box.left},${box.top}`}
              x={box.left * width}
              y={box.top * height}
              width={box.width * width}
              height={box.height * height}
            />
          ))}
      </svg>
    </Button>
  );
}

/** What the picture shows, in words: the document, the page, and the marked words. */
export function described(view: DocumentView, uri: string | null): string {
  const words = marksHere(view)
    .map((mark) => slice(view.text, mark.start, mark.end).replace(/\s+/g, " "))
    .join(" … ");
  const short = beginning(words, SHORT);
  const shown = `${short}${short === words ? "" : " …"}`;
  return plain(messages("parts").picture(documentName(uri), view.page, shown));
}
