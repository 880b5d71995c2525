export const providerKeyEndpoints = {}
