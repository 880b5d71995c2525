/** An operation that cannot be done on this installation. The message says why and what to do; it holds no secret. */
export class OperationError extends Error {
  override readonly name = 'OperationError'
}
