import type { Messages } from "..";
import { ask } from "./ask";
import { documents } from "./documents";
import { frame } from "./frame";
import { parts } from "./parts";
import { quality } from "./quality";
import { search } from "./search";

export const de: Messages = { ask, documents, frame, parts, quality, search };
