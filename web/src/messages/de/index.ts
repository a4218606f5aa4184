import type { Messages } from "..";
import { documents } from "./documents";
import { frame } from "./frame";
import { parts } from "./parts";
import { quality } from "./quality";
import { search } from "./search";

export const de: Messages = { documents, frame, parts, quality, search };
