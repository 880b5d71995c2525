/**
 * Loads the parts of the AWS SDK that are used without waiting, at their first use. Together with the rest of the SDK they take 10 MiB of memory, and many
 * processes open no store in S3. Decision 0540 says why.
 */
import { createRequire } from 'node:module'

const load = createRequire(import.meta.url)

/** The client with its endpoint rules. */
export const clientS3 = (): typeof import('@aws-sdk/client-s3') => load('@aws-sdk/client-s3')

export const signatureV4 = (): typeof import('@smithy/signature-v4') => load('@smithy/signature-v4')
