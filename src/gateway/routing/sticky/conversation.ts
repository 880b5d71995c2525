/** The conversation to which a call belongs, as far as the call says so. */
export interface Conversation {
  /** The id that the client gives. Null when it gives none. */
  readonly named: string | null
  /** Returns the id: the one that the client gives, or one made of how the conversation begins. Null when there is neither. It is computed once. */
  id(): string | null
  /** Returns true when an earlier call of the conversation may have been made. */
  goesOn(): boolean
}
