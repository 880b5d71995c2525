/** One part of a form that goes to a provider. */
export type FormPart =
  | { readonly name: string; readonly value: string }
  | { readonly name: string; readonly filename: string; readonly contentType: string; readonly bytes: Buffer }

/**
 * Builds a multipart/form-data body. The boundary must not be guessable: bytes that contain it would end their part and begin another one, with fields that
 * were never priced.
 */
export function multipartBody(parts: readonly FormPart[], boundary: string): { readonly contentType: string; readonly body: Buffer } {
  const pieces: Buffer[] = []
  for (const part of parts) {
    const disposition = `--${boundary}\r\ncontent-disposition: form-data; name="${quoted(part.name)}"`
    if ('value' in part) pieces.push(Buffer.from(`${disposition}\r\n\r\n${part.value}\r\n`))
    else
      pieces.push(
        Buffer.from(`${disposition}; filename="${quoted(part.filename)}"\r\ncontent-type: ${oneLine(part.contentType)}\r\n\r\n`),
        part.bytes,
        Buffer.from('\r\n'),
      )
  }
  pieces.push(Buffer.from(`--${boundary}--\r\n`))
  return { contentType: `multipart/form-data; boundary=${boundary}`, body: Buffer.concat(pieces) }
}

/** Escapes a name or a file name in the same way as browsers do. */
const quoted = (name: string): string => name.replaceAll('"', '%22').replaceAll('\r', '%0D').replaceAll('\n', '%0A')

/** Replaces a type that could break its header line. */
const oneLine = (type: string): string => (/^[\x20-\x7e]+$/.test(type) ? type : 'application/octet-stream')
