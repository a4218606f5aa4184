/** Questions to begin with, which the documents can answer for this person: a press asks one, or searches it. */
import { useApp, useLoaded } from "../context";
import { useMessages } from "../messages";
import { address } from "../route";
import "../style/suggestions.css";
import { plain } from "./names";
import { answerable } from "./questions";

interface Kept {
  questions: string[];
  /** Milliseconds since 1970. */
  until: number;
}

const KEPT_MILLISECONDS = 24 * 60 * 60_000;

/** Without questions: the first documents may be on their way into the index. */
const EMPTY_MILLISECONDS = 10 * 60_000;

export function Suggestions({ page }: { page: "ask" | "search" }) {
  const { session, kept } = useApp();
  const text = useMessages("parts");
  const { data } = useLoaded("suggestions", async (client, signal) => {
    const before = kept.read<Kept | null>("suggestions", null);
    if (before && Date.now() < before.until) return before.questions;
    const questions = await answerable(client, session.settings.questions, text.probes, signal);
    const lifetime = questions.length > 0 ? KEPT_MILLISECONDS : EMPTY_MILLISECONDS;
    kept.write("suggestions", { questions, until: Date.now() + lifetime } satisfies Kept);
    return questions;
  });
  if (!data?.length) return null;
  return (
    <section className="suggestions" aria-label={text.suggestions}>
      <p className="small">{text.suggestions}</p>
      <ul>
        {data.map((question) => (
          <li key={question}>
            <a className="button" href={address(page, { q: question })}>
              <bdi>{plain(question)}</bdi>
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}
