/** The conversations of the person, in the sidebar. The service keeps none yet, so there is nothing to list. */
export function Conversations() {
  return null;
}
