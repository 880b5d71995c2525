/** The error when an operation is not possible on this installation. The message says why and what to do. It contains no secret. */
export class OperationError extends Error {
  override readonly name = 'OperationError'
}
