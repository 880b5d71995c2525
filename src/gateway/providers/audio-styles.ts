import type { AudioStyle } from './audio/audio-style.ts'
import { openAiAudio } from './audio/openai-audio.ts'
import type { AudioStyleId, Provider } from './provider.ts'

const styles: Readonly<Record<AudioStyleId, AudioStyle>> = { openai: openAiAudio }

/** Returns the audio style of a provider. The default is `openai`. */
export function audioStyleOf({ audioStyle }: Provider): AudioStyle {
  return styles[audioStyle ?? 'openai']
}
