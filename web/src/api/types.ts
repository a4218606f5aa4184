import type { components as Bodies } from "./requests";
import type { components } from "./schema";

type Requests = Bodies["schemas"];
type Schemas = components["schemas"];

export type AskRequest = Requests["AskRequest"];
export type AskResponse = Schemas["AskResponse"];
export type ClosestDocument = Schemas["ClosestDocument"];
export type Conversation = Schemas["Conversation"];
export type ConversationSummary = Schemas["ConversationSummary"];
export type ConversationTurn = Schemas["ConversationTurn"];
export type DocumentDetail = Schemas["DocumentDetail"];
export type DocumentReceipt = Schemas["DocumentReceipt"];
export type DocumentView = Schemas["DocumentView"];
export type DocumentSummary = Schemas["DocumentSummary"];
export type ExplainResponse = Schemas["ExplainResponse"];
export type Facets = Schemas["Facets"];
export type FoundDocument = Schemas["FoundDocument"];
export type InferredFilter = Schemas["InferredFilter"];
export type Me = Schemas["Me"];
export type Note = Schemas["Note"];
export type RetrieveRequest = Requests["RetrieveRequest"];
export type RetrieveResponse = Schemas["RetrieveResponse"];
export type RetrievedResult = Schemas["RetrievedResult"];
export type Sentence = Schemas["Sentence"];
export type SliceReport = Schemas["SliceReport"];
export type Source = Schemas["Source"];
export type SourcesEvent = Schemas["SourcesEvent"];
