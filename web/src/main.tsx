import "./style/tokens.css";
import "./style/base.css";
import "./style/parts.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app";
import { openLanguage } from "./messages";
import { ErrorBox } from "./parts/states";
import { Session } from "./session";
import "./theme";

// A page that the browser kept for *Back* may show what somebody else saw before they signed out.
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});

const root = createRoot(document.getElementById("root") as HTMLElement);
Promise.all([Session.open(), openLanguage()]).then(
  ([session]) =>
    root.render(
      <StrictMode>
        <App session={session} />
      </StrictMode>,
    ),
  (error: Error) => root.render(<ErrorBox error={error} onRetry={() => location.reload()} />),
);
