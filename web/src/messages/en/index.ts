import { frame } from "./frame";
import { parts } from "./parts";
import { quality } from "./quality";
import { search } from "./search";

export const en = { frame, parts, quality, search };
