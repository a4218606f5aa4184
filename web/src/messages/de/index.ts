import type { Messages } from "..";
import { frame } from "./frame";
import { parts } from "./parts";

export const de: Messages = { frame, parts };
