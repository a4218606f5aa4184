import { documents } from "./documents";
import { frame } from "./frame";
import { parts } from "./parts";

export const en = { documents, frame, parts };
