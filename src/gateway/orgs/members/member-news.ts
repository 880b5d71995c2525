/**
 * Returns a function that says whether a row belongs to the member that the reference of `member_changed` names. It compares numbers, because caches ask it
 * for every row that they have.
 */
export function isOfMember(ref: string): (row: { readonly orgId: number; readonly userId: number | null }) => boolean {
  const [org, user] = ref.split(':').map(Number)
  return ({ orgId, userId }) => orgId === org && userId === user
}
