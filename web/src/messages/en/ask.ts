import { wordsIn } from "../words";

const { counted, list, number, plural } = wordsIn("en");

/** Ask. */
export const ask = {
  title: "Ask your documents",
  placeholder: "What do you want to know?",
  followUp: "Ask a follow-up",
  ask: "Ask",
  askAgain: "Ask again",
  stop: "Stop",
  changed: "Press Ask again to ask the same question with what you changed.",

  question: "Your question",
  edit: "Edit the question",
  answerIs: (answer: string) => `Answer: ${answer}`,
  noAnswerIs: (answer: string) => `No answer: ${answer}`,
  searching: "Searching the documents …",
  reading: (count: number) => `Reading ${counted(count, "passage", "passages")} …`,
  stalled: "Nothing has arrived for 10 seconds. The answer may still come. You can also stop, and ask again.",
  stopped: "Stopped",
  youStopped: "You stopped this answer. The text above was not verified as a whole.",
  youStoppedEarly: "You stopped this answer before it began.",
  cameBack: "You came back to a question that was not answered.",
  askItAgain: "Ask it again",
  incomplete: "The search is incomplete: a part of it failed or timed out, so sources may be missing.",
  searchedFor: "Searched for:",

  openSource: (source: number) => `Open source ${source}`,
  openMarked: "Open with the words marked",
  openOriginal: "Open the original",
  current: "current",
  olderVersions: (count: number) => counted(count, "older version", "older versions"),
  otherwise: (count: number, figure: string, version: string | null) =>
    `${counted(count, "older version", "older versions")} ${plural(count, { one: "says", other: "say" })} otherwise: ${figure}${
      version ? ` (${version})` : ""
    }`,
  source: (source: number) => `Source ${source}`,
  sources: "Sources",
  notCited: (count: number) => `${counted(count, "more passage", "more passages")}, not cited`,

  unsupported: "unsupported",
  unsupportedWhy: "No source supports this sentence",
  partly: "partly supported",
  notSupported: "not supported",
  judgedSo: "The model compared this sentence with the passages that it cites",
  wordForWord: (quotations: number) => `${counted(quotations, "quotation", "quotations")}, word for word`,
  allCited: (sentences: number) =>
    `${counted(sentences, "sentence", "sentences")}, ${plural(sentences, { one: "with its source", other: "each with a source" })}`,
  someSupported: (supported: number, all: number) =>
    `${number(supported)} of ${counted(all, "sentence is", "sentences are")} supported`,
  fromDocuments: (documents: number) => `from ${counted(documents, "document", "documents")}`,
  confidence: { 3: "High confidence", 2: "Medium confidence", 1: "Low confidence" },
  confidenceWhy: (share: string) =>
    `With a probability of ${share}, the quotations answer the question. High: 80 % or more. Medium: 60 % or more.`,
  howMade: "How this answer was made",
  noModel: "No model was called",
  withoutModel: "Quoted from the documents, without a model",
  writtenBy: (model: string) => `Written by ${model}`,
  took: (duration: string) => `Took ${duration}`,
  cutOff: "Cut off at the maximum length",
  removedCitations: (count: number) =>
    `${counted(count, "citation", "citations")} without a source ${plural(count, { one: "was", other: "were" })} removed`,

  copy: "Copy",
  share: "Share",
  shareQuestion: "Copy the link to this question",
  shareHint:
    "Whoever opens the link asks the question again. Their rights may differ from yours, and so may the answer.",
  whySources: "Why these sources?",

  shareConversation: "Share the conversation",
  shareRights:
    "Whoever signs in and has the link can read the conversation, and what you add to it. Their rights may differ from yours: they see only answers from documents that they may see.",
  link: "Link",
  makeLink: "Make a link",
  showLink: "Show the link",
  copyLink: "Copy the link",
  stopSharing: "Stop sharing",
  linkIsReady: "The link is ready",
  linkIsGone: "The link no longer works",
  sharedBy: (owner: string) => `Shared by ${owner}. You see only answers from documents that you may see.`,
  withheldTurns: (count: number) =>
    `${counted(count, "answer", "answers")} ${plural(count, { one: "is", other: "are" })} withheld.`,
  withheldRights: "You may not see all documents from which this answer was made.",
  withheldDeleted: "A document from which this answer was made was deleted.",
  changedSince: (names: readonly string[]) =>
    `${list(names)} ${plural(names.length, { one: "has", other: "have" })} changed since this answer.`,
  notSaved: (reason: string) => `This answer was not added to your conversations: ${reason}`,
  signInToSee: "Conversations belong to people. Sign in to see those that you may.",
  theConversation: "the conversation",

  conversations: "Conversations",
  searchConversations: "Search conversations",
  noConversations: "Your questions will be kept here.",
  noConversationFound: "No conversation has these words.",
  notKept: "Conversations are not kept here.",
  moreConversations: "Show older ones",
  ages: { today: "Today", week: "Last seven days", older: "Older" },
  moreOf: (title: string) => `More: ${title}`,
  rename: "Rename",
  newName: "New name; Enter saves it",
  exportMarkdown: "Export as Markdown",
  delete: "Delete",
  willBeDeleted: (title: string) => `“${title}” will be deleted`,
  notDeleted: (title: string, reason: string) => `“${title}” was not deleted. ${reason}`,

  noAnswer: "The documents do not answer this.",
  mayNotAnswer: "The documents may not answer this. These are the closest passages.",
  missing: (values: readonly string[]) => `No searchable document has ${list(values)}.`,
  closest: "Closest documents",
  closestPassages: "Closest passages",
  searchInstead: "Search instead",
  findMissing: "Find a missing document",
  findMissingHint:
    "By words of its name, its folder or its attributes; also documents that cannot be searched.",
  reportGap: "Report the gap",
  reported: "Reported",
  reportedThanks: "Reported to those who can add documents.",
  reportFailed: (reason: string) => `The report could not be sent: ${reason}`,

  firstSteps: "There are no documents yet",
  upload: "Upload documents",
  uploadHint: "PDF, Word, Excel, HTML, Markdown, e-mails and more.",
  toUpload: "Go to the documents",
  askFirst: "Ask a question",
  askFirstHint: "Answers quote the documents, and every quotation opens with its words marked.",
  invite: "Invite others",
  inviteHint: "They sign in at this address, and see what they have access to.",
  copyAddress: "Copy the address",
};
