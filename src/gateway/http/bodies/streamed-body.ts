import type { IncomingMessage, ServerResponse } from 'node:http'
import type { BodyStream } from '../../../platform/endpoint.ts'
import { isTooFine } from '../../../platform/loop/fine-pieces.ts'
import { skipBody, tooFine } from './pieces.ts'
import { admitBody, ClientGoneError, tooLarge } from './request-body.ts'

/**
 * Returns a body that its handler reads while it arrives. It takes no room, because its bytes are not kept; while the handler is busy, the client waits. The
 * server ends a request that takes too long. Throws `unsupported_media_type` and `payload_too_large`.
 */
export function streamedBody(request: IncomingMessage, response: ServerResponse, limitBytes: number): BodyStream {
  const refused = admitBody(request, response, limitBytes, null)
  if (refused !== null) throw refused
  return { contentType: request.headers['content-type'] ?? '', pieces: piecesOf(request, limitBytes) }
}

async function* piecesOf(request: IncomingMessage, limitBytes: number): AsyncGenerator<Buffer> {
  let bytes = 0
  let pieces = 0
  try {
    // The reply to a refused body needs the connection, so the end of the reading does not close it.
    for await (const piece of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += piece.length
      if (bytes > limitBytes) throw tooLarge(limitBytes)
      if (isTooFine(++pieces, bytes)) throw tooFine()
      yield piece
    }
  } catch (error) {
    throw request.complete || !isGone(request) ? error : new ClientGoneError()
  } finally {
    if (!request.complete) skipBody(request)
  }
}

const isGone = ({ destroyed, socket }: IncomingMessage): boolean => destroyed || socket.destroyed
