import type { Messages } from "..";
import { documents } from "./documents";
import { frame } from "./frame";
import { parts } from "./parts";

export const de: Messages = { documents, frame, parts };
