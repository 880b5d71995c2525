/** The object store of the bench: the S3 server of the tests, in memory, with real signatures. `node s3.mjs <folder>` prints `listening <JSON>`. */
import { fromHarness } from './from-test.mjs'

const forgetEveryMs = 1000

const { startS3Server } = await fromHarness('s3-server.ts', process.argv[2])
const { endpoint, hostPort, bucket, accessKey, secretKey, requests } = await startS3Server()
// The server keeps a list of requests for tests. The bench empties it, because it would fill the memory.
setInterval(() => {
  requests.length = 0
}, forgetEveryMs)
console.log(`listening ${JSON.stringify({ endpoint, hostPort, bucket, accessKey, secretKey })}`)
