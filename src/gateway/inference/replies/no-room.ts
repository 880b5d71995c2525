/** What a stream answers when this process has no room for what it has to keep of it. */
import { fail, type GatewayError } from '../../../platform/errors.ts'
import type { HeldRefusal } from '../../../platform/outbound/held-replies.ts'
import type { StreamEnd } from '../stream/stream-end.ts'

/** When a caller that found no room may come back. */
const retryAfterSeconds = 2

const noRoomMessage: Readonly<Record<HeldRefusal, string>> = {
  total: 'This process has no room for more of the replies of providers (REPLIES_MAX_BYTES). Try again shortly.',
  organisation:
    'The replies of providers that this process keeps for your organisation and the others of its founder have no more room (REPLIES_MAX_BYTES, ORG_SHARE_PERCENT). Try again shortly.',
}

/** Returns the error of a reply of which nothing was sent to the client: `replies_refused`. */
export const noRoomError = (why: HeldRefusal): GatewayError =>
  fail('replies_refused', { message: noRoomMessage[why], retryAfterSeconds, extra: { limit_name: 'REPLIES_MAX_BYTES' } })

/** Returns the end of a stream that has begun. */
export const noRoomEnd = (why: HeldRefusal): StreamEnd => ({ name: 'replies_refused', message: noRoomMessage[why] })
