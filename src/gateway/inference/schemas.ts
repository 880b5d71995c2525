/** Schemas for the documentation of the inference rows. The hot path checks by hand; these say the same to readers and tools. */
export { chatRequestSchema, chatResponseSchema } from '../wire/chat.ts'
export { embeddingsRequestSchema, embeddingsResponseSchema } from '../wire/embeddings.ts'
