import type { Target } from '../dialect.ts'
import { asObject, type ImageStyle, type Job, madeOf, objectOf, refused, textOr, unusable } from '../image-style.ts'
import { headersFor, jsonRequest, lostOf, refuseEdits, splitOthers } from './request-parts.ts'
import { steppedSize } from './sizes.ts'

const taken = ['seed', 'prompt_upsampling', 'safety_tolerance', 'output_format', 'image_prompt']

/**
 * Black Forest Labs. A request starts a job, and its reply contains the URL of the job's state. Results are URLs that are valid for ten minutes. The
 * provider has no call to cancel a job.
 */
export const blackForestLabs: ImageStyle = {
  imagesPerRequest: () => 1,

  request(params, target) {
    refuseEdits(params, target)
    const { size, isExact } = steppedSize(params.size, { step: 32, min: 256, max: 1440 })
    const { kept, left } = splitOthers(params, taken)
    const url = `${target.provider.baseUrl}/${encodeURIComponent(target.upstreamModel)}`
    const dropped = [...lostOf(params, { size: isExact, format: params.format === 'url' }), ...left]
    return jsonRequest(url, headersFor(target), { ...kept, prompt: params.prompt, ...size }, dropped, target)
  },

  reply(reply, target) {
    const body = objectOf(reply)
    const id = body?.['id']
    if (typeof id !== 'string' || id === '') return unusable('it answered without a job')
    const given = body?.['polling_url']
    const url = given === undefined || given === null ? `${target.provider.baseUrl}/get_result?id=${encodeURIComponent(id)}` : ownUrl(given, target)
    return url === null ? unusable('it gave an address of its job that is not its own') : { kind: 'job', job: jobAt(url, target) }
  },

  poll(reply) {
    const body = objectOf(reply)
    switch (body?.['status']) {
      case 'Pending':
        return { kind: 'pending' }
      case 'Ready': {
        const sample = asObject(body['result'])?.['sample']
        return madeOf(typeof sample === 'string' && sample !== '' ? [{ url: sample }] : [])
      }
      case 'Request Moderated':
      case 'Content Moderated':
        return refused(`it did not make the image (${textOr(body['status'], '')})`)
      default:
        return unusable(`its job ended as "${textOr(body?.['status'], 'nothing')}"`)
    }
  },
}

const jobAt = (url: string, target: Target): Job => ({ url, headers: headersFor(target), cancelUrl: null })

/**
 * Returns the URL if it belongs to the provider, and null otherwise. Each poll contains the key, so polls go only to the provider: to its own origin,
 * or over https to another host of its domain. Other hosts are needed because the global host passes jobs to regional hosts.
 */
function ownUrl(given: unknown, { provider }: Target): string | null {
  if (typeof given !== 'string' || !URL.canParse(given)) return null
  const url = new URL(given)
  const base = new URL(provider.baseUrl)
  if (url.username !== '' || url.password !== '') return null
  if (url.origin === base.origin) return url.href
  const isRegional = url.protocol === 'https:' && url.port === '' && base.hostname.endsWith('.bfl.ai') && url.hostname.endsWith('.bfl.ai')
  return isRegional ? url.href : null
}
