/**
 * The first script of the page. What it does not wait for loads at the same time: the settings, who uses the page, the
 * frame, and the page of the address.
 */
import "./style/tokens.css";
import "./style/base.css";
import "./style/parts.css";
import { Client } from "./api/client";
import { whoIs } from "./identity";
import { LOADERS } from "./pages";
import { parsePlace } from "./route";
import { Session } from "./session";
import "./theme";

// A page that the browser kept for *Back* may show what somebody else saw before they signed out.
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});

const opened = Session.open().then((session) => {
  const client = new Client(session);
  return { session, client, first: whoIs(client, session) };
});
opened.then(({ first }) => first).catch(() => undefined); // the frame says so when it is there
const { page } = parsePlace(location.hash);
if (page in LOADERS) LOADERS[page as keyof typeof LOADERS]().catch(() => undefined); // the frame loads it again
import("./mount").then(
  ({ mount }) => mount(opened),
  () => {
    document.querySelector(".starting")?.remove();
    document.getElementById("failed")?.removeAttribute("hidden");
  },
);
