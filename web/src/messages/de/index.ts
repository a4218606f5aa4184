import type { Messages } from "..";
import { frame } from "./frame";
import { parts } from "./parts";
import { quality } from "./quality";
import { search } from "./search";

export const de: Messages = { frame, parts, quality, search };
