/**
 * The token with which this page calls models. It is only in the memory of the page, and no cookie reaches the endpoints of inference. Decision
 * 0723 says why.
 */
import { api, type ReplyOf } from '../../../api/call.ts'

type Minted = ReplyOf<'mintPlaygroundToken'>

/** A token is replaced this long before it ends, so that it does not end between two requests. */
const sparedMs = 30_000

let kept: Minted | null = null
let pending: Promise<Minted> | null = null

/** Returns a token of the person's playground agent. Two columns that ask at the same moment get the same one. */
export async function playgroundToken(): Promise<string> {
  if (kept !== null && Date.parse(kept.expires_at) - Date.now() > sparedMs) return kept.access_token
  pending ??= api('mintPlaygroundToken', { body: {} }).finally(() => {
    pending = null
  })
  kept = await pending
  return kept.access_token
}

/** Forgets a token that the gateway no longer accepts. */
export function forgetToken(): void {
  kept = null
}

/** Returns the id of the person's playground agent, when this page knows it. */
export const playgroundAgent = (): number | null => kept?.agent.id ?? null
