/** Shows the frame in the page, with what `main.ts` has begun to load. */
import { options } from "preact";
import { type ComponentProps, StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App, loadFirst } from "./app";
import { openLanguage } from "./messages";
import { ErrorBox } from "./parts/states";

// Effects run before the next key or click, as with React: otherwise a key that is pressed within a frame of the last
// one meets a field that has not got the focus yet.
options.requestAnimationFrame = queueMicrotask;

export function mount(opened: Promise<ComponentProps<typeof App>>): void {
  const root = createRoot(document.getElementById("root") as HTMLElement);
  Promise.all([opened, openLanguage(), loadFirst()]).then(
    ([found]) =>
      root.render(
        <StrictMode>
          <App {...found} />
        </StrictMode>,
      ),
    (error: Error) => root.render(<ErrorBox error={error} onRetry={() => location.reload()} />),
  );
}
