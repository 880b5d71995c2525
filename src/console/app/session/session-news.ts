/** What the tabs of one browser tell each other about the session that they share. */
type News = 'signed-in' | 'moved' | 'signed-out'

/** One channel for the whole tab, because a channel delivers nothing to itself but everything to its neighbours in the same tab. */
const channel = new BroadcastChannel('brigade-session')

/** Notifies the other tabs. */
export const tellTabs = (news: News): void => channel.postMessage(news)

/** Calls `listener` for news of other tabs. Returns a function that ends it. */
export function onTabNews(listener: (news: News) => void): () => void {
  const onMessage = (event: MessageEvent<News>): void => listener(event.data)
  channel.addEventListener('message', onMessage)
  return () => channel.removeEventListener('message', onMessage)
}
