import { createReadStream } from 'node:fs'
import { fileReason, wrongUsage } from '../command-error.ts'

/** Maximum size of the content in bytes. No gateway accepts more. The limit also keeps a wrong file from filling this computer's memory. */
const contentMaxBytes = 64 * 1024 * 1024

/**
 * Returns the content that a command writes. It comes from `--text`, otherwise from a file, otherwise from stdin (which `-` also names). Throws
 * CommandError (2) when there is nothing to read.
 */
export async function contentOf(file: string | undefined, text: string | undefined): Promise<Buffer> {
  if (text !== undefined) {
    if (file !== undefined) throw wrongUsage(`say either the file "${file}" or --text.`)
    return Buffer.from(text)
  }
  if (file !== undefined && file !== '-') return readAll(createReadStream(file), file)
  if (process.stdin.isTTY) throw wrongUsage('say what to write: a file, --text "…", or pipe it in.')
  return readAll(process.stdin, 'stdin')
}

async function readAll(stream: AsyncIterable<Buffer | string>, from: string): Promise<Buffer> {
  const chunks: Buffer[] = []
  let sizeBytes = 0
  try {
    for await (const chunk of stream) {
      chunks.push(Buffer.from(chunk))
      sizeBytes += chunk.length
      if (sizeBytes > contentMaxBytes) break
    }
  } catch (cause) {
    throw wrongUsage(`${from} cannot be read: ${fileReason(cause)}.`, cause)
  }
  if (sizeBytes > contentMaxBytes) throw wrongUsage(`${from} has more than ${contentMaxBytes / 1024 / 1024} MB: that is no object of shared memory.`)
  return Buffer.concat(chunks)
}

/** Returns the content as text, for requests that send it in JSON. Throws CommandError (2) when it is not UTF-8. */
export function textOf(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (cause) {
    throw wrongUsage('this command writes text (UTF-8), and the input is not UTF-8. brigade memory put writes bytes.', cause)
  }
}
