/**
 * The identities that sign for stores without keys: this process, by the credential chain of the AWS SDK, or a role that it assumes. Decision 0392
 * says why.
 */
import type { defaultProvider } from '@aws-sdk/credential-provider-node'
import type { STSClient } from '@aws-sdk/nested-clients/sts'
import type { Clock } from '../../../platform/clock.ts'
import { ObjectStoreError } from '../object-store.ts'
import type { KeySource, SigningKeys } from './s3-options.ts'

/** How long before their expiry keys are renewed. The renewal runs in the background while calls still use the old keys. */
const refreshAheadMs = 5 * 60_000
/** Minimum time after a refresh before the next refresh in the background. */
const refreshPauseMs = 1_000
/**
 * When there are no valid keys, the failure of a fetch is cached. The time is one second at first and doubles with each further failure, up to this
 * maximum.
 */
const failurePauseMsMax = 60_000
/**
 * A fetch also begins when a store says that the keys have expired. This is the minimum time between two such fetches. Until then, the caller gets the
 * store's refusal.
 */
const forcedEveryMs = 30_000
const roleSeconds = 3_600
const stsTimeoutMs = 10_000

export interface AwsIdentityOptions {
  readonly clock: Clock
  /** Region of the STS endpoint that the gateway calls to assume roles. The operator chooses it, never an organisation. */
  readonly stsRegion: string
}

export class AwsIdentity {
  readonly #options: AwsIdentityOptions
  #own: KeySource | null = null
  #sts: STSClient | null = null

  constructor(options: AwsIdentityOptions) {
    this.#options = options
  }

  /**
   * Returns the identity of this process. The SDK tries environment, profile, SSO, web identity, container and instance, in its own order, and renews the
   * keys.
   */
  get own(): KeySource {
    if (this.#own === null) {
      let chain: Promise<ReturnType<typeof defaultProvider>> | null = null
      this.#own = options => {
        chain ??= import('@aws-sdk/credential-provider-node').then(sdk => sdk.defaultProvider())
        return chain
          .then(keys => keys(options === undefined ? undefined : { ...options }))
          .catch((cause: unknown) => Promise.reject(noKeys('this gateway has no AWS identity', cause)))
      }
    }
    return this.#own
  }

  /** Returns a role of an organisation. This process assumes it with the external id of that organisation. */
  role(orgId: number, roleArn: string, externalId: () => Promise<string>): KeySource {
    const { clock, stsRegion } = this.#options
    const assume = async (): Promise<SigningKeys> => {
      const { AssumeRoleCommand, STSClient } = await import('@aws-sdk/nested-clients/sts')
      const ExternalId = await externalId()
      this.#sts ??= new STSClient({ region: stsRegion, credentials: this.own, maxAttempts: 2 })
      const command = new AssumeRoleCommand({ RoleArn: roleArn, RoleSessionName: `brigade-org-${orgId}`, ExternalId, DurationSeconds: roleSeconds })
      try {
        const { Credentials: made } = await this.#sts.send(command, { abortSignal: AbortSignal.timeout(stsTimeoutMs) })
        if (made?.AccessKeyId === undefined || made.SecretAccessKey === undefined) throw new Error('STS sent no keys')
        return {
          accessKeyId: made.AccessKeyId,
          secretAccessKey: made.SecretAccessKey,
          ...(made.SessionToken === undefined ? {} : { sessionToken: made.SessionToken }),
          ...(made.Expiration === undefined ? {} : { expiration: made.Expiration }),
        }
      } catch (cause) {
        if (cause instanceof ObjectStoreError) throw cause
        throw noKeys(`the role could not be assumed: its trust policy must name this gateway and the external id ${ExternalId}`, cause)
      }
    }
    return refreshed(clock, assume)
  }
}

/**
 * Returns a source that caches keys. Concurrent callers share one fetch of new keys. Before the keys expire, the fetch runs in the background. After they
 * expire, calls wait for it. A failure is cached for a while.
 */
export function refreshed(clock: Pick<Clock, 'nowMs'>, fetch: () => Promise<SigningKeys>): KeySource {
  let current: { readonly keys: Promise<SigningKeys>; readonly endMs: number } | null = null
  let running: Promise<SigningKeys> | null = null
  let notBeforeMs = 0
  let forcedAtMs = Number.NEGATIVE_INFINITY
  let failed: { readonly error: unknown; readonly pauseMs: number; readonly endMs: number } | null = null
  const renew = (): Promise<SigningKeys> => {
    running ??= fetch()
      .then(keys => {
        current = { keys: Promise.resolve(keys), endMs: keys.expiration?.getTime() ?? Number.POSITIVE_INFINITY }
        failed = null
        return keys
      })
      .catch((error: unknown) => {
        const pauseMs = Math.min(failed === null ? refreshPauseMs : failed.pauseMs * 2, failurePauseMsMax)
        failed = { error, pauseMs, endMs: clock.nowMs() + pauseMs }
        throw error
      })
      .finally(() => {
        notBeforeMs = clock.nowMs() + refreshPauseMs
        running = null
      })
    return running
  }
  return options => {
    const nowMs = clock.nowMs()
    if (current === null || current.endMs <= nowMs) return failed !== null && nowMs < failed.endMs ? Promise.reject(failed.error) : renew()
    if (options?.forceRefresh === true && nowMs - forcedAtMs >= forcedEveryMs) {
      forcedAtMs = nowMs
      return renew()
    }
    // The keys are still valid, so a later call tries again when a refresh fails.
    if (current.endMs - nowMs < refreshAheadMs && running === null && nowMs >= notBeforeMs) renew().catch(() => {})
    return current.keys
  }
}

const noKeys = (what: string, cause: unknown): ObjectStoreError => new ObjectStoreError('denied', what, { cause })
