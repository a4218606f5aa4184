/** Documents whose keys contain what somebody writes. */
import { useEffect, useState } from "react";
import { useLoaded } from "../../context";

const LIMIT = 20;
const PAUSE_MILLISECONDS = 200;

/** Keys that contain a text, once nobody has typed for a moment. */
export function useSuggestions(text: string): string[] {
  const [settled, setSettled] = useState("");
  const wanted = text.trim();
  useEffect(() => {
    const timer = setTimeout(() => setSettled(wanted), PAUSE_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [wanted]);
  const list = useLoaded(`documents ${settled}`, async (client, signal) =>
    settled ? client.get("/api/documents", { name: settled, limit: LIMIT }, signal) : null,
  );
  return list.data?.documents.map((each) => each.key) ?? [];
}
