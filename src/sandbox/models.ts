import type { Exchange } from './exchange.ts'

/** The chat models. */
export const chatModels = ['sandbox-chat', 'sandbox-reasoning', 'sandbox-vision'] as const
/** Every id that the sandbox knows. */
export const modelIds = [...chatModels, 'sandbox-embed', 'sandbox-image', 'sandbox-audio', 'sandbox-speech', 'sandbox-rerank', 'sandbox-moderation'] as const

/** Returns an error body in OpenAI's format. */
export function openAiError(message: string, type: string, code: string | null, param: string | null = null): unknown {
  return { error: { message, type, param, code } }
}

/** Serves GET /v1/models. */
export function listModels(exchange: Exchange): void {
  exchange.json(200, { object: 'list', data: modelIds.map(id => ({ id, object: 'model', created: 0, owned_by: 'sandbox' })) })
}

/** Answers 404 for an unknown model and 400 for a model of another kind. Returns false if the model is allowed. */
export function refuseModel(exchange: Exchange, model: string, allowed: readonly string[]): boolean {
  if (allowed.includes(model)) return false
  if (modelIds.some(id => id === model))
    exchange.json(400, openAiError(`The model \`${model}\` cannot do that.`, 'invalid_request_error', 'unsupported_model', 'model'))
  else
    exchange.json(
      404,
      openAiError(`The model \`${model}\` does not exist or you do not have access to it.`, 'invalid_request_error', 'model_not_found', 'model'),
    )
  return true
}
