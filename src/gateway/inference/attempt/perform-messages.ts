import { GatewayError } from '../../../platform/errors.ts'
import type { Performer } from '../kinds/kind.ts'
import { performChat } from './perform-chat.ts'

/**
 * Makes one attempt of a chat, messages or responses call. Admission has checked that the first route can express the request. When only a later
 * route cannot, that route has failed and the call goes on.
 */
export const performMessages: Performer = (attempt, context) => {
  try {
    context.request.checkFor?.(attempt)
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const message = `${attempt.route.provider.id} was not called: ${error.message}`
    return Promise.resolve({ kind: 'failed', attempt, failure: { kind: 'client', status: error.status }, message })
  }
  return performChat(attempt, context)
}
