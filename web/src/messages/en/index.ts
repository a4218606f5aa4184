import { admin } from "./admin";
import { ask } from "./ask";
import { documents } from "./documents";
import { frame } from "./frame";
import { parts } from "./parts";
import { quality } from "./quality";
import { search } from "./search";

export const en = { admin, ask, documents, frame, parts, quality, search };
