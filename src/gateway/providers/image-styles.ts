import type { ImageStyle } from './image-style.ts'
import type { ImageStyleId } from './image-style-ids.ts'
import { alibabaTasks } from './images/alibaba.ts'
import { blackForestLabs } from './images/black-forest-labs.ts'
import { fireworksDiffusion, fireworksWorkflow } from './images/fireworks.ts'
import { geminiImages } from './images/gemini.ts'
import { minimaxImages } from './images/minimax.ts'
import { passthrough } from './images/passthrough.ts'
import { stabilityImages } from './images/stability.ts'

const styles: Readonly<Record<ImageStyleId, ImageStyle>> = {
  openai: passthrough({ edits: true }),
  // These models always return base64, and refuse the field that would ask for it.
  'openai-gpt-image': passthrough({ formats: null, only: 'b64_json', edits: true }),
  'openai-dall-e': passthrough({ imagesPerRequest: 1 }),
  together: passthrough({ size: 'width-height', formats: { url: 'url', b64_json: 'base64' }, quality: false, user: null }),
  xai: passthrough({ size: 'none', quality: false }),
  zhipu: passthrough({ imagesPerRequest: 1, formats: null, only: 'url', user: 'user_id' }),
  bytedance: passthrough({
    imagesPerRequest: 1,
    quality: false,
    user: null,
    withheld: ['sequential_image_generation', 'sequential_image_generation_options'],
  }),
  stepfun: passthrough({ imagesPerRequest: 1, quality: false, user: null }),
  gemini: geminiImages,
  stability: stabilityImages,
  fireworks: fireworksWorkflow,
  'fireworks-diffusion': fireworksDiffusion,
  minimax: minimaxImages,
  'black-forest-labs': blackForestLabs,
  alibaba: alibabaTasks,
}

/** Returns the style of that id. */
export const imageStyleOf = (id: ImageStyleId): ImageStyle => styles[id]
