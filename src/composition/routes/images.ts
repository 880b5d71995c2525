import type { ImageSettings } from '../../gateway/inference/deps.ts'
import type { Config } from '../../platform/config.ts'

/** Returns the settings of image calls from the operator's configuration. */
export function imageSettings(config: Config): ImageSettings {
  return {
    serviceId: config.SERVICE_ID,
    pollMs: config.IMAGE_POLL_MS,
    deadlineMs: config.IMAGE_DEADLINE_MS,
    judgeModel: config.PANEL_JUDGE,
    judgeTimeoutMs: config.PANEL_JUDGE_TIMEOUT_MS,
  }
}
