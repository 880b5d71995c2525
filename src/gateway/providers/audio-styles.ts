import type { AudioStyle } from './audio/audio-style.ts'
import { openAiAudio } from './audio/openai-audio.ts'
import type { AudioStyleId, Provider } from './provider.ts'

const styles: Readonly<Record<AudioStyleId, AudioStyle>> = { openai: openAiAudio }

/** How a provider is asked for audio. */
export function audioStyleOf({ audioStyle }: Provider): AudioStyle {
  return styles[audioStyle ?? 'openai']
}
