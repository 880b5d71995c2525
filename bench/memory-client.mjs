/** The two clients that the memory bench compares: the AWS SDK, and the memory API over HTTP. */
import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import { Pool } from 'undici'

/** Returns a client of the AWS SDK without optional work. As in Brigade, it sends checksums only where the protocol requires them. */
export function sdkClient({ endpoint, bucket, accessKey, secretKey }) {
  const client = new S3Client({
    endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId: accessKey, secretAccessKey: secretKey },
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  })
  return {
    async get(key) {
      const { Body } = await client.send(new GetObjectCommand({ Bucket: bucket, Key: key }))
      return Buffer.from(await Body.transformToByteArray())
    },
    async put(key, bytes) {
      await client.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: bytes, ContentType: 'text/plain; charset=utf-8' }))
    },
    close: async () => client.destroy(),
  }
}

/** Returns a client of the memory API of a gateway, or of a server that answers in the same way. */
export function httpClient({ url, headers, connections }) {
  const pool = new Pool(url, { connections, pipelining: 1 })
  const send = async (method, key, body) => {
    const reply = await pool.request({ method, path: `/v1/me/memory/o?key=${encodeURIComponent(key)}`, headers, body })
    const bytes = Buffer.from(await reply.body.arrayBuffer())
    if (reply.statusCode !== 200) throw new Error(`${method} ${key}: ${reply.statusCode} ${bytes.toString('utf8').slice(0, 200)}`)
    return bytes
  }
  return { get: key => send('GET', key), put: (key, bytes) => send('PUT', key, bytes), close: () => pool.close() }
}
