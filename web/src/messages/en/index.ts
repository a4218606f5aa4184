import { frame } from "./frame";
import { parts } from "./parts";

export const en = { frame, parts };
