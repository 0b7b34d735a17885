#include "driver/verify/self_text.h"

namespace sinter {

std::string_view self_check_text() {
  return R"(The harbour at Lindholm freezes later every year. When my grandfather was young, the first ice came in November, and by Christmas the boys of the village skated to the lighthouse and back before breakfast. Now the boats go out until the middle of January, and in some winters the water between the piers stays open until spring, grey and slow under the gulls.

Anna Bergström has kept the records since 1974. Every morning at seven she walks to the end of the long pier, lowers a thermometer on a cord to a depth of two metres, waits for three minutes, and writes the number into a green book with a pencil, because ink runs in the rain. She has filled nineteen of these books. They stand on a shelf in her kitchen, between the cookery books and a radio that has not worked for a decade.

"People ask me what it is good for," she says. "I tell them that it is good for getting up in the morning."

But the books turned out to be good for more than that. Two summers ago a student from the university came to the village to count mussels, and rented the room above the bakery. One evening she was invited to dinner, saw the shelf, and asked what was in the books. By midnight they had opened all of them on the floor. The student photographed every page, which took four days, and typed the numbers into a table, which took the whole of the autumn. There were 16,071 measurements. Only on forty-three days was there no number, and on most of those there had been a storm.

What the table shows is simple. The mean temperature of the water in October has risen by 1.9 degrees. The day on which the water first falls below four degrees has moved from the ninth of November to the second of December. And the mussels, which need cold water before they spawn, now do so about three weeks later than the fishermen remember, if they do so at all.

A satellite sees the surface of the sea, and it has done so only since the end of the seventies. A buoy measures at depth, but buoys are expensive; they break, drift away, and are replaced by others that measure a little differently. A person who does the same thing at the same place with the same kind of instrument for half a century is rare. There are perhaps thirty such series in the world, and nobody had known of this one.

The paper was printed in March. It has two authors. The older of them went to the library in town, read it once from the beginning to the end, and found a mistake in the third table, where the values of two years had been exchanged. She wrote a letter to the journal. Then she bought a new green book, since the last one had only eleven empty pages left.

I asked her whether she would now use an electronic thermometer, which stores its values by itself and which the university had offered to pay for. She thought about it for a while, looking at the water. The wind had turned to the north, and small waves ran along the stones.

"I could," she said. "But then who would see whether the ice is there?"
)";
}

}  // namespace sinter
