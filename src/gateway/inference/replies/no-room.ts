/** The answer to a stream when this process has no room for the part of the stream that it must keep. */
import { fail, type GatewayError } from '../../../platform/errors.ts'
import type { HeldRefusal } from '../../../platform/outbound/held-replies.ts'
import type { StreamEnd } from '../stream/stream-end.ts'

/** The seconds after which a caller without room may try again. */
const retryAfterSeconds = 2

const noRoomMessage: Readonly<Record<HeldRefusal, string>> = {
  total: 'This process has no room for more of the replies of providers (REPLIES_MAX_BYTES). Try again shortly.',
  organisation:
    'The replies of providers that this process keeps for your organisation and the others of its founder have no more room (REPLIES_MAX_BYTES, ORG_SHARE_PERCENT). Try again shortly.',
}

/** Returns the error `replies_refused` for a reply before anything was sent to the client. */
export const noRoomError = (why: HeldRefusal): GatewayError =>
  fail('replies_refused', { message: noRoomMessage[why], retryAfterSeconds, extra: { limit_name: 'REPLIES_MAX_BYTES' } })

/** Returns the end of a stream when the client already has a part of it. */
export const noRoomEnd = (why: HeldRefusal): StreamEnd => ({ name: 'replies_refused', message: noRoomMessage[why] })
