import { type ComponentType, useCallback, useEffect, useState } from "react";
import { useMessages } from "../messages";
import { usePlace } from "../route";
import { ErrorBox, Loading } from "./states";

/**
 * Load a page when it is first shown. React's own `lazy` shows what has loaded no earlier than 300 ms after its
 * fallback, which is as long as the first rows of a list may take.
 */
export function later(
  load: () => Promise<{ default: ComponentType }>,
): ComponentType & { load: () => Promise<void> } {
  let loaded: ComponentType | null = null;
  const begin = async () => {
    loaded = (await load()).default;
  };
  // biome-ignore lint/correctness/noComponentHookFactories: it is called once for each page, in the module
  function Later() {
    const text = useMessages("parts");
    const { page: names } = useMessages("frame");
    const { page } = usePlace();
    const [Page, setPage] = useState(() => loaded);
    const [error, setError] = useState<Error | null>(null);
    const start = useCallback(() => {
      setError(null);
      begin().then(() => setPage(() => loaded), setError);
    }, []);
    useEffect(() => {
      if (loaded === null) start();
    }, [start]);
    if (Page) return <Page />;
    return (
      <>
        <h1 className="visually-hidden">{names[page as keyof typeof names]}</h1>
        {error ? (
          <ErrorBox error={new Error(text.pageFailed)} onRetry={start} />
        ) : (
          <Loading what={text.thePage} />
        )}
      </>
    );
  }
  /** Begin before the page is shown. The browser loads a module once; why it failed is found out again. */
  Later.load = () => begin().catch(() => undefined);
  return Later;
}
