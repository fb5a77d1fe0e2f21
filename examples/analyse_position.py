"""What the network thinks of a position: its first ideas, the best line, and who is winning."""

import keisei

game = keisei.shogi.ShogiGame()
for move in ("7g7f", "3c3d", "8h2b+", "3a2b"):
    game.push_usi(move)
print(game)

net = keisei.load("shipped")
for move, probability in list(net.policy(game).items())[:5]:
    print(f"{game.name(move).western:8} {probability:.0%}")

found = net.analyse(game, nodes=400)
print(f"{game.turn} wins with {found.win_chance:.0%}: {' '.join(found.line)}")
